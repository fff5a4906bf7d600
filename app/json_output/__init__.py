"""JSON output of the commands: its envelope, the type of each command's result, and the schemas made from them."""
