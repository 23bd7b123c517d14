"""The history of the view refreshment paper's example, carried on: what there is at each moment, written out by hand.

The first two moments are the paper's, 11.15.95 and 11.17.95. Those after them delete and update, which the paper does
for two of its five storages only. Of each it is said who joins whom, and who joins nobody.
"""

from refreshment_paper import Moment, Rows

R_15: Rows = {"r1": (1, 10, 100), "r2": (2, 11, 101), "r3": (3, 12, 102), "r4": (4, 13, 103)}
S_15: Rows = {"s1": (1, 20, 200), "s2": (2, 21, 201), "s3": (5, 22, 202), "s4": (6, 23, 203)}
R_I: Rows = {"r5": (5, 14, 104), "r6": (7, 15, 105)}
S_I: Rows = {"s5": (3, 24, 204), "s6": (8, 25, 205)}

HISTORY = (
    Moment("11.15.95", R_15, S_15, (("r1", "s1"), ("r2", "s2")), ("r3", "r4"), ("s3", "s4")),
    Moment(
        "11.17.95: R_I and S_I",
        R_15 | R_I,
        S_15 | S_I,
        (("r1", "s1"), ("r2", "s2"), ("r3", "s5"), ("r5", "s3")),
        ("r4", "r6"),
        ("s4", "s6"),
    ),
    Moment(
        "r1 is deleted: its partner s1 goes to S0",
        {
            "r2": (2, 11, 101),
            "r3": (3, 12, 102),
            "r4": (4, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        S_15 | S_I,
        (("r2", "s2"), ("r3", "s5"), ("r5", "s3")),
        ("r4", "r6"),
        ("s1", "s4", "s6"),
    ),
    Moment(
        "s5 is deleted: r3 goes back to R0",
        {
            "r2": (2, 11, 101),
            "r3": (3, 12, 102),
            "r4": (4, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        {
            "s1": (1, 20, 200),
            "s2": (2, 21, 201),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r2", "s2"), ("r5", "s3")),
        ("r3", "r4", "r6"),
        ("s1", "s4", "s6"),
    ),
    Moment(
        "r4.a becomes 6: it leaves R0 and finds s4",
        {
            "r2": (2, 11, 101),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        {
            "s1": (1, 20, 200),
            "s2": (2, 21, 201),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r2", "s2"), ("r4", "s4"), ("r5", "s3")),
        ("r3", "r6"),
        ("s1", "s6"),
    ),
    Moment(
        "r2.c, which nothing compares, becomes 111",
        {
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        {
            "s1": (1, 20, 200),
            "s2": (2, 21, 201),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r2", "s2"), ("r4", "s4"), ("r5", "s3")),
        ("r3", "r6"),
        ("s1", "s6"),
    ),
    Moment(
        "one batch: r7 comes and finds s6, s2 goes, so r2 is alone and r8, which comes, has no partner either",
        {
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
            "r7": (8, 16, 106),
            "r8": (2, 17, 107),
        },
        {
            "s1": (1, 20, 200),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r4", "s4"), ("r5", "s3"), ("r7", "s6")),
        ("r2", "r3", "r6", "r8"),
        ("s1",),
    ),
    Moment(
        "r5 is deleted and its key used again in the same batch, with other values: it changes partners",
        {
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (1, 18, 108),
            "r6": (7, 15, 105),
            "r7": (8, 16, 106),
            "r8": (2, 17, 107),
        },
        {
            "s1": (1, 20, 200),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r4", "s4"), ("r5", "s1"), ("r7", "s6")),
        ("r2", "r3", "r6", "r8"),
        ("s3",),
    ),
    Moment(
        "the key of r1 is used again long after it was deleted; r9 and s9 come together and find each other",
        {
            "r1": (5, 19, 109),
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (1, 18, 108),
            "r6": (7, 15, 105),
            "r7": (8, 16, 106),
            "r8": (2, 17, 107),
            "r9": (9, 30, 300),
        },
        {
            "s1": (1, 20, 200),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
            "s9": (9, 31, 301),
        },
        (("r1", "s3"), ("r4", "s4"), ("r5", "s1"), ("r7", "s6"), ("r9", "s9")),
        ("r2", "r3", "r6", "r8"),
        (),
    ),
)
NOV_15, NOV_17 = HISTORY[:2]
