"""From pieces to the pieces of a translation, and from lines of text to lines of text."""
