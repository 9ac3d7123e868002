"""`make pages`: write what is generated in the documents."""

from tests.documents.pages import main

main()
