"""An application with REST framework routers in every supported form."""

from collections.abc import Mapping

API: Mapping[str, str] = {
    "manage.py": "import os\nos.environ['DJANGO_SETTINGS_MODULE'] = 'site_api.settings'\n",
    "site_api/__init__.py": "",
    "site_api/settings.py": """
SECRET_KEY = "x"
INSTALLED_APPS = [
    "django.contrib.auth", "django.contrib.contenttypes", "rest_framework", "books",
]
ROOT_URLCONF = "site_api.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
""",
    "site_api/urls.py": """
from django.urls import include, path
from rest_framework.urlpatterns import format_suffix_patterns
from books import views
from books.routers import bare, nested, plain, rootless
urlpatterns = [
    path("nested/", include((nested.urls, "nested"))),
    path("rootless/", include(rootless.urls)),
    path("bare/", include(bare.urls)),
]
urlpatterns += format_suffix_patterns([path("status/", views.status, name="status")])
urlpatterns += format_suffix_patterns(plain.urls, allowed=["json", "csv"])
""",
    "books/__init__.py": "",
    "books/models.py": "from django.db import models\n\n\nclass Book(models.Model):\n    pass\n",
    "books/views.py": """
from rest_framework.decorators import action, api_view
from rest_framework.response import Response
from rest_framework.viewsets import ModelViewSet, ReadOnlyModelViewSet
from rest_framework_extensions.mixins import NestedViewSetMixin
from books.models import Book
class Books(ModelViewSet):
    queryset = Book.objects.all()
    lookup_value_regex = "[0-9]+"
    @action(detail=True, methods=["post"], url_path="lend-out")
    def lend(self, request, pk):
        return Response()
    @action(detail=False)
    def newest(self, request):
        return Response()
class Pages(NestedViewSetMixin, ReadOnlyModelViewSet):
    queryset = Book.objects.all()
class Notes(Pages):
    lookup_field = "key"
@api_view(["GET", "PUT"])
def status(request):
    return Response()
""",
    "books/routers.py": """
from rest_framework.routers import DefaultRouter, SimpleRouter
from rest_framework_extensions.routers import ExtendedDefaultRouter, ExtendedSimpleRouter
from books.views import Books, Notes, Pages
class Bare(ExtendedSimpleRouter):
    pass
nested = ExtendedDefaultRouter()
books = nested.register("books", Books)
pages = books.register("pages", Pages, "book-page", ["book"])
pages.register("notes", Notes, basename="page-note", parents_query_lookups=["page__book", "page"])
rootless = SimpleRouter(trailing_slash=False)
kept = rootless.register("volumes", Books, basename="volume")
bare = Bare()
bared = bare.register("bare", Pages, "bare")
bared.register("notes", Notes, "bare-note", ["page"])
plain = SimpleRouter()
plain.register("", Books, "book")
""",
}
