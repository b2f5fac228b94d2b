"""What went wrong: from a raw failure to a verdict.

    from orchestrator import Context, RawFailure, classify

    verdict = classify(RawFailure.http(429, {"retry-after": "12"}, body), context=Context())

`classify` is the whole of it (and `warm`, to have it ready before the first failure), `explain`
shows the steps, `raw` has one constructor per surface, `kinds` is the table, `rules` are the
recognisers, `hints` reads waits, `redact` scrubs, `held` and `refusal` read what agents write in
place of an error.  The package names nothing itself: `classify` is the name of the module.
"""
