"""The recognisers, one file per speaker.  Adding a wording is one row here and one case in tests.

Patterns are RE2, read in text that is lower case with single spaces and straight quotes.
`catalogue` lists the files in the order in which they speak; `user` reads rows that a user adds.
"""
