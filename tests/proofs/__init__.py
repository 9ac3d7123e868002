"""`make proofs`: the large counts behind the tests, in pieces of under ten minutes each."""
