"""Routes and tables of real applications: those that Laravel itself makes, and those derived here.

Belongs here: running an application's route files and migrations by the release of Laravel that it
asks for (`laravel`, `php/`), reading its repository as a sync does (`repository`), and comparing
both (`compare`). Does not: anything of an application; they are named, with their commits.
"""
