"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The word before the mutant selects the tests: MB_7_n_m are rows of modelbooster spec 7, LZ_… those
of llmaz spec 3.5, 6, 8 and 9.
"""

from tests.support.mutants import Mutant


def _expansion(defect: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(defect, f"expansion/{module}", old, new)


MUTANTS = (
    _expansion(
        "MB_7_1_3",
        "backend_pods",
        '            "periodSeconds": 10,\n        },\n        volumeMounts=[_cache_mount(plan)],',
        '            "periodSeconds": 10,\n        },',
    ),
    _expansion(
        "MB_7_1_3",
        "backend_environment",
        "_standard(plan), _ROLE_VARIABLES.get(worker, ()))",
        "_standard(plan), [_OFFLINE], _ROLE_VARIABLES.get(worker, ()))",
    ),
    _expansion(
        "MB_7_1_4",
        "backend_plan",
        "            BACKEND_NAME: fitted_name(self.backend.name),\n",
        "",
    ),
    _expansion(
        "MB_7_1_5",
        "backend_pods",
        "present(labels=plan.pod_labels, annotations=annotations)",
        "present(annotations=annotations)",
    ),
    _expansion(
        "MB_7_1_6",
        "backend_plan",
        'return f"/{claim}" if claim else _absolute(uri.partition("://")[2])',
        'return uri.partition("://")[2]',
    ),
    _expansion(
        "MB_7_1_6", "backend_plan", "            return DEFAULT_MOUNT", '            return ""'
    ),
    _expansion(
        "MB_7_1_7",
        "engine_commands",
        "options_of({SERVED_MODEL_NAME: plan.served_model, **options_of(worker.config)})",
        "options_of(worker.config)",
    ),
    _expansion(
        "MB_7_1_8",
        "backend_roles",
        '"workerReplicas": max(0, worker_pods(self.plan, worker) - 1)',
        '"workerReplicas": (worker.pods or 0) - 1',
    ),
    _expansion(
        "MB_7_1_9",
        "backend_scaling",
        "        if plan.backend.autoscaling_policy is not None\n",
        "        if plan.backend.autoscaling_policy or PolicyBody()\n",
    ),
    Mutant("MB_7_1_10", "builtin/drain", "print sum + 0", "print seen ? sum : 1"),
    _expansion(
        "MB_7_1_12",
        "backend_pods",
        "        affinity=worker.affinity,\n",
        "",
    ),
    _expansion(
        "MB_7_1_12",
        "backend_plan",
        "return booster.spec.name or booster.metadata.name",
        "return booster.metadata.name",
    ),
    _expansion(
        "MB_7_2",
        "backend_scaling",
        "return DEFAULT_COST_EXPANSION_RATE_PERCENT if rate is None else rate",
        "return rate or 0",
    ),
    _expansion("MB_7_3", "engine_commands", "shlex.join(engine)", "' '.join(engine)"),
    _expansion(
        "MB_7_3",
        "environment",
        'kept.setdefault(str(variable.get("name")), dict(variable))',
        "kept[str(len(kept))] = dict(variable)",
    ),
    _expansion(
        "LZ_S1",
        "model_loader",
        'shared = [{"name": VOLUME, "emptyDir": {}}] if loading.loaded else []',
        'shared = [{"name": VOLUME, "emptyDir": {}}]',
    ),
    _expansion(
        "LZ_S2",
        "environment",
        'kept.setdefault(str(variable.get("name")), dict(variable))',
        "kept[str(len(kept))] = dict(variable)",
    ),
    _expansion(
        "LZ_S3",
        "inference_service",
        "if one.scheme in UNLOADED_BY_REFERENCE or dotted:",
        "if dotted:",
    ),
    _expansion(
        "LZ_S4",
        "model_sources",
        "return last if _WEIGHT_FILE in last.lower() else None",
        'return last if "." in last else None',
    ),
    _expansion(
        "LZ_S7",
        "model_sources",
        "            one = replace(one, subfolder=model.metadata.name)\n",
        "            pass\n",
    ),
    _expansion(
        "LZ_D1",
        "environment",
        "    return list(kept.values())\n\n\ndef literal",
        "    return __import__('random').sample(list(kept.values()), len(kept))\n\n\ndef literal",
    ),
    _expansion("LZ_D2", "flavors", "    if where.required:\n", "    if False:\n"),
    _expansion("LZ_D3", "leader_worker", '"LeaderCreated"', '"LeaderReady"'),
    _expansion("LZ_T59", "recommended", "wanted = name or (", "wanted = ("),
    _expansion(
        "LZ_T60",
        "leader_worker",
        "        restartPolicy=template.restart_policy.value,\n",
        "",
    ),
    _expansion("LZ_T62", "flavors", "    if missing:\n", "    if False:\n"),
    _expansion(
        "LZ_T65",
        "playground",
        "    raise BlockedError(\n        Obstacle.RUNTIME_MISSING",
        '    return typed(BackendRuntime, BUILT_IN_RUNTIMES["vllm"])\n'
        "    raise BlockedError(\n        Obstacle.RUNTIME_MISSING",
    ),
    Mutant(
        "LZ_B1",
        "builtin/runtimes",
        "lifecycle=drain_hook(VLLM_GAUGES, PORT)",
        "lifecycle=drain_hook(VLLM_GAUGES, 8000)",
    ),
    Mutant("LZ_B2", "builtin/runtimes", "export OLLAMA_HOST=127.0.0.1:11434\n", ""),
    Mutant("LZ_B3", "builtin/runtimes", "STARTUP_FAILURES = 360", "STARTUP_FAILURES = 30"),
    Mutant("LZ_B4", "builtin/runtimes", '["--metrics", "--alias", _MODEL_NAME]', '["--metrics"]'),
)
