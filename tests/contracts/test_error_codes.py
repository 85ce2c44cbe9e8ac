"""Error codes are given out once: people search for them, and scripts compare them."""

import re

from inferbus_contracts.errors import ErrorCode

GIVEN_OUT = {
    "IB-1001": "BROKEN_YAML",
    "IB-1002": "NOT_A_DOCUMENT",
    "IB-1003": "UNKNOWN_KIND",
    "IB-1004": "UNKNOWN_FIELD",
    "IB-1005": "MISSING_FIELD",
    "IB-1006": "WRONG_TYPE",
    "IB-1007": "VALUE_OUT_OF_RANGE",
    "IB-1008": "RULE_BROKEN",
    "IB-1009": "BAD_NAME",
    "IB-1010": "TOO_LARGE",
    "IB-2001": "DUPLICATE_NAME",
    "IB-2002": "MISSING_REFERENCE",
    "IB-2003": "NOT_FOUND",
    "IB-2004": "CONFLICT",
    "IB-2005": "FIELD_OWNED_BY_OTHER",
    "IB-2006": "IMMUTABLE_FIELD",
    "IB-2007": "ALREADY_EXISTS",
    "IB-2008": "UNSUPPORTED",
    "IB-3001": "BUS_UNREACHABLE",
    "IB-3002": "BUS_FULL",
    "IB-3003": "BUS_REFUSED",
    "IB-3004": "POISON_EVENT",
    "IB-3005": "TOPOLOGY_MISSING",
    "IB-3006": "BUS_TIMEOUT",
    "IB-4001": "PORT_IN_USE",
    "IB-4002": "DISK_FULL",
    "IB-4003": "BAD_SETTING",
    "IB-4004": "NOT_RUNNING",
    "IB-4005": "ALREADY_RUNNING",
    "IB-4006": "PROCESS_FAILED",
    "IB-4007": "PERMISSION_DENIED",
    "IB-4008": "BAD_ARGUMENT",
    "IB-4009": "NO_ADDRESS_SPACE",
    "IB-4010": "TIMED_OUT",
    "IB-4011": "KUBE_UNREACHABLE",
    "IB-4012": "KUBE_REFUSED",
    "IB-4013": "KUBE_INVALID",
    "IB-4014": "KUBE_THROTTLED",
    "IB-4015": "KUBE_FAILED",
    "IB-5001": "MODEL_SOURCE_INVALID",
    "IB-5002": "MODEL_NOT_FOUND",
    "IB-5003": "MODEL_UNAUTHORIZED",
    "IB-5004": "MODEL_CORRUPT",
    "IB-5005": "MODEL_SOURCE_UNREACHABLE",
    "IB-6001": "ROUTE_CONFLICT",
    "IB-6002": "NO_READY_ENDPOINT",
}
"""Every code there ever was, and what it means. Lines are added, never changed or removed."""

RETIRED: frozenset[str] = frozenset()
"""Codes that nothing reports any more."""


def test_a_code_keeps_its_meaning_and_new_ones_are_listed_here() -> None:
    assert {code.value: code.name for code in ErrorCode} == {
        code: name for code, name in GIVEN_OUT.items() if code not in RETIRED
    }


def test_a_code_is_a_number_in_the_block_of_its_subject() -> None:
    assert all(re.fullmatch(r"IB-[1-6][0-9]{3}", code) for code in GIVEN_OUT)


def test_a_meaning_has_one_code() -> None:
    assert len(set(GIVEN_OUT.values())) == len(GIVEN_OUT)
