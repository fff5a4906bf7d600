"""Write the blocks of docs/published.md that are made from the cells."""

from tests.assets.identities.page import PAGE, blocks, with_blocks

if __name__ == "__main__":
    PAGE.write_text(with_blocks(PAGE.read_text("utf-8"), blocks()), "utf-8")
