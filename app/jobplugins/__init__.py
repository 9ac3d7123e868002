"""Job plugins: what each adds to the pods of a job, and the objects it makes beside them.

:func:`catalogue.parse` reads a job's ``spec.plugins`` once; the :class:`catalogue.JobPlugins` it
returns changes pods on their way to the API server and lists the objects that the job wants. There
is no I/O here: an object is a :class:`wanted.Wanted`, which says what to do about what is stored.
One module per plugin; what the arguments mean is read in :mod:`app.jobplugins.rules`.

What the user has written wins: a variable, port, mount or volume that a pod has already is left as
it is, so a plugin applied twice changes nothing the second time.
"""
