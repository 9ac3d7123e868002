"""Long texts, shortened before they are told on."""


def shortened(text: str, most: int) -> str:
    """``text``; where it has more than ``most`` characters, its middle is left out.

    A sentence that quotes a value begins with what it is about and ends with what to do, so both
    ends are kept.
    """
    if len(text) <= most:
        return text
    gap = f"...[{len(text)} characters]..."
    kept = max(most - len(gap), 0)
    end = kept // 2
    return f"{text[: kept - end]}{gap}{text[len(text) - end :]}"
