"""A few cases of a cross product that cover every pair of values."""

import itertools


def covering(cases):
    """Of `cases` (tuples of one length), some such that any two values that stand together in a case stand together in one of them.
    Greedy, always the first case that covers most, so the same cases every time."""
    def pairs(case):
        return {(i, case[i], j, case[j]) for i, j in itertools.combinations(range(len(case)), 2)}

    missing, chosen = set().union(*map(pairs, cases)), []
    while missing:
        best = max(cases, key=lambda case: len(pairs(case) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen
