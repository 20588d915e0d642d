"""Programs to compare with, each in its own process; they import nothing of Bidkeeper unless they say so."""
