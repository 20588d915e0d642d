"""The described interface: every operation with its request and its answers."""
