"""The reference's defects that end in the publisher, each put back by one line."""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_28",
        "policy_http_rules",
        'if one.type != "URLRewrite" or one.url_rewrite is None:',
        'if one.type == "":',
    ),
    Mutant(
        "RT_28",
        "policy_pools",
        "match_labels=pool.spec.selector.match_labels)",
        'match_labels={"model-server": "needed"})',
    ),
    Mutant(
        "RT_34",
        "policy_selection",
        "            self._members[selector].discard(item)\n",
        "            self._members[selector].add(item)\n",
    ),
    Mutant("RT_34", "policy_servers", "            if old == new:\n", "            if False:\n"),
    Mutant(
        "RT_35",
        "policy_conditions",
        "    if view.is_served:\n",
        "    if view.endpoints:\n",
    ),
    Mutant(
        "RT_37",
        "policy_conditions",
        "        if not server.exists\n",
        "        if not server\n",
    ),
    Mutant(
        "RT_37",
        "policy_names",
        "        concerned = {*self._sharing(before), *self._sharing(claim)} - {key}\n",
        "        concerned: set[ObjectKey] = set()\n",
    ),
)
