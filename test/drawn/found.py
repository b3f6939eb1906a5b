"""What draws have found and what became of it: (what was drawn, what came of it, what was wrong, what changed). docs/drawn.md has the table."""

FOUND = [
    ("bf16 on tile registers (AMX)", "ds-run died by SIGSEGV", "runtime",
     "a compiler may leave unwritten what the intrinsic for the tiles' configuration does not name; it is told now"),
]
