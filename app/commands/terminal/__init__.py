"""Parts of commands that write to the terminal: progress, status lines and questions."""
