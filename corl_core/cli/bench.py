def add_verbs(verbs, common): pass
