"""What a gang lacks, in which pieces it may be placed, and which phase it has."""
