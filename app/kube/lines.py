"""Lines out of pieces that end anywhere."""


class LineSplitter:
    """Keeps the beginning of a line until the piece with its end arrives."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes, without empty ones."""
        if b"\n" not in piece:
            self._begun.append(piece)
            return []
        lines = piece.split(b"\n")
        if self._begun:
            self._begun.append(lines[0])
            lines[0] = b"".join(self._begun)
        rest = lines.pop()
        self._begun = [rest] if rest else []
        return [line for line in lines if line]
