"""Long runs against whole installations and simulated weeks (docs/drills.md)."""
