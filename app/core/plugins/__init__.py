"""The policies, one module each: ``configure(conf) -> OpenPlugin``.

A plugin checks its arguments once, when the configuration is loaded, and reads the snapshot once,
when a cycle opens; afterwards it only answers. Plugins know nothing of each other: how their
answers combine is :mod:`app.core.points`' business, which names exist is
:mod:`app.core.plugins.catalogue`'s. Arithmetic that several share lives in ``shares``, ``limits``
and ``water_filling``.
"""
