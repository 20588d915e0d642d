"""The page's files: what a browser gets as it stands here. No build step makes them, and nothing else is served."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
