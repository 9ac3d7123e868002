"""Job plugins as far as they can be judged without making an object.

``spec.plugins`` of a vcjob maps plugin names to arguments in flag syntax. :mod:`catalogue` says
which names exist, which plugins bring others with them, and reads a job's whole ``spec.plugins``
into argument values (:mod:`arguments`) and problems; :mod:`flags` is the syntax, :mod:`job_tasks`
the tasks of a job and the host names of its pods, :mod:`advice` what is allowed and yet worth a
warning.

Admission and the job controller read with the same code, so a job that is refused by one would
have failed in the other with the same words.
"""
