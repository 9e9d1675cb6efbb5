"""Routes and tables of real applications: those that Laravel makes, and those derived here.

Belongs here: running an application's route files and migrations with the release of Laravel that
it requires (`laravel`, `php/`), reading its repository as a sync does (`repository`), and comparing
both (`compare`). Not here: code of an application; applications are named with their commits.
"""
