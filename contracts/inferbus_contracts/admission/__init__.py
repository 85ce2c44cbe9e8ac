"""Admission of documents: schema, defaults, and the rules that span fields.

`admit` is the way in; `check_change` and `stamps` are what an object's store needs beside it.
"""

from inferbus_contracts.admission.admit import MAX_OBJECT_BYTES, Admitted, admit
from inferbus_contracts.admission.changes import check_change
from inferbus_contracts.admission.stamps import stamped_labels, stamps

__all__ = ["MAX_OBJECT_BYTES", "Admitted", "admit", "check_change", "stamped_labels", "stamps"]
