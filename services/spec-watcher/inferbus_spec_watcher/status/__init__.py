"""Status: what each object says of itself, as pure functions of what is known.

The status of ModelServings, LeaderWorkerSets and pods is their own writers'; to the first only
`Accepted` is added.
"""
