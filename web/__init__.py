"""The page's files: what a browser gets as it stands here, without a build step. The server adds the words of codes."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
