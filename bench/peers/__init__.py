"""Programs to compare with, each its own process; they import nothing of Bidkeeper unless they say so."""
