"""The `bidkeeper` command, one file per verb."""
