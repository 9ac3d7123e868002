"""Amounts as people write them: cpu in cores or milli-cores, bytes in Gi or Mi, counts plain."""

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_PREFIXES = ("requests.", "limits.")
_BYTES = frozenset({"memory", "ephemeral-storage", "storage"})


def amount_text(resource: str, amount: int) -> str:
    """``amount`` base units of ``resource``, exact where a binary unit is, else to two decimals."""
    for prefix in _PREFIXES:
        resource = resource.removeprefix(prefix)
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _bytes_text(amount)
    return str(amount)


def _bytes_text(amount: int) -> str:
    power = max((abs(amount).bit_length() - 1) // 10, 0)
    power = min(power, len(_BINARY) - 1)
    for exact in (power, power - 1):
        if exact >= 0 and amount % (1 << 10 * exact) == 0:
            return f"{amount >> 10 * exact}{_BINARY[exact]}"
    return f"{amount / (1 << 10 * power):.2f}{_BINARY[power]}"
