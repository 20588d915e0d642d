"""The described interface: every operation with what it takes and answers."""
