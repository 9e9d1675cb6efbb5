"""A small Django application in every supported form, and the facts of files."""

from collections.abc import Mapping
from pathlib import Path

from rag_assets.ingest.chunking.chunk_set import locate_facts
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.symbols.model import FileFacts

PROJECT: Mapping[str, str] = {
    "manage.py": "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n",
    "shop/__init__.py": "",
    "shop/settings.py": """
SECRET_KEY = "x"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages",
    "core", "billing.apps.BillingConfig",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "core.clock.Clock",
]
ROOT_URLCONF = "shop.urls"
AUTH_USER_MODEL = "core.Person"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
""",
    "shop/urls.py": """
from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.urls import include, path, re_path
from django.views.generic import RedirectView, TemplateView
from billing import urls as billing_urls
from billing.views import InvoiceList, ping
from core import views
more = [path("more/<uuid:key>/", views.echo, name="more")]
more.append(path("appended/", views.echo, name="appended"))
about = path("about/", TemplateView.as_view(template_name="about.html"), name="about")
urlpatterns = [
    path("", views.home, name="home"),
    path("admin/", admin.site.urls),
    about,
    path("billing/", include("billing.urls")),
    path("second/", include(("billing.urls", "billing"), namespace="second")),
    path("module/", include(billing_urls, namespace="third")),
    path("tuple/", ([path("in/", ping, name="in")], "t", "u")),
    path("list/", include([path("a/", views.echo), *more])),
    re_path(r"^old/(?P<year>[0-9]{4})/(?:x/)?$", views.echo, kwargs={"a": 1}, name="old"),
    path("closed/", login_required(InvoiceList.as_view()), name="closed"),
    path("go/", RedirectView.as_view(url="/")),
    path("named/", view=views.echo, name="named"),
] + more
urlpatterns += i18n_patterns(path("local/", views.home, name="local"))
urlpatterns.extend([path("late/", views.echo, name="late")])
for word in ("x", "y"):
    urlpatterns.append(path(word, views.echo))
if settings.DEBUG:
    urlpatterns += [path("debug/", views.echo)]
""",
    "core/__init__.py": "",
    "core/clock.py": "class Clock:\n    def __init__(self, get_response): self.g = get_response\n"
    "    def __call__(self, request): return self.g(request)\n",
    "core/models.py": """
from django.contrib.auth.models import AbstractUser
from django.db import models
class Stamped(models.Model):
    created = models.DateTimeField(auto_now_add=True)
    class Meta:
        abstract = True
        app_label = "core"
class Upper(models.CharField):
    pass
class Person(AbstractUser):
    nick = Upper(max_length=9, db_column="nickname")
""",
    "core/views.py": """
from django.http import HttpResponse
from django.views.decorators.http import require_http_methods
from django.views.generic import View
from core.tasks import work
@require_http_methods(["GET", "POST"])
def home(request):
    work.delay(1)
    return HttpResponse()
def echo(request, **more):
    return HttpResponse()
class Base(View):
    def get(self, request):
        return HttpResponse()
""",
    "core/tasks.py": "try:\n    from celery import shared_task\nexcept ImportError:\n"
    "    def shared_task(f):\n        f.delay = f\n        return f\n\n\n"
    "@shared_task\ndef work(n):\n    return n\n",
    "billing/__init__.py": "",
    "billing/apps.py": "from django.apps import AppConfig\n\n\nclass BillingConfig(AppConfig):\n"
    "    name = 'billing'\n    label = 'money'\n",
    "billing/signals.py": """
from django.db.models.signals import post_save
from django.dispatch import Signal, receiver
paid = Signal()
@receiver(post_save)
def saved(sender, **more):
    pass
def other(sender, **more):
    pass
paid.connect(other)
""",
    "billing/forms.py": "from django import forms\n\nfrom billing.models import Invoice\n\n\n"
    "class InvoiceForm(forms.ModelForm):\n    class Meta:\n        model = Invoice\n"
    "        fields = ['number']\n",
    "billing/services.py": "def pay(invoice):\n    return invoice\n\n\ndef _helper():\n    pass\n",
    "billing/views/__init__.py": "from .invoices import InvoiceList, InvoiceDetail\n"
    "from .invoices import ping\n",
    "billing/views/invoices.py": """
from django.http import HttpResponse
from django.views.generic import DetailView
from core.views import Base
from ..models import Invoice
class InvoiceList(Base):
    def post(self, request):
        return HttpResponse()
class InvoiceDetail(DetailView):
    model = Invoice
    http_method_names = ["get", "head"]
def _ping(request):
    return HttpResponse()
ping = _ping
""",
    "billing/urls.py": """
from django.urls import path
from . import views
app_name = "billing"
urlpatterns = [
    path("", views.InvoiceList.as_view(), name="list"),
    path("<int:pk>/<slug:part>/", views.InvoiceDetail.as_view(), name="detail"),
]
""",
    "billing/models/__init__.py": "from .invoice import *\nfrom .customer import Customer, Proxy\n",
    "billing/models/customer.py": """
from django.conf import settings
from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models
from core.models import Stamped
class Customer(Stamped):
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE)
    friends = models.ManyToManyField("self")
    kind = models.ForeignKey(ContentType, on_delete=models.CASCADE)
    thing = GenericForeignKey("kind", "key")
    key = models.PositiveIntegerField()
class Proxy(Customer):
    class Meta:
        proxy = True
""",
    "billing/models/invoice.py": """
from django.db import models
from core.models import Stamped
from .customer import Customer
__all__ = ["Invoice", "Line", "Credit", "Product"]
class Product(models.Model):
    sku = models.CharField(max_length=9, primary_key=True)
class Invoice(Stamped):
    number = models.CharField(max_length=20, unique=True)
    customer = models.ForeignKey(Customer, models.PROTECT, null=True)
    products = models.ManyToManyField(Product, through="Line", related_name="+")
    created = None
    class Meta:
        db_table = "invoices"
class Line(models.Model):
    invoice = models.ForeignKey("money.Invoice", on_delete=models.CASCADE)
    product = models.ForeignKey("Product", on_delete=models.CASCADE)
class Credit(Invoice):
    reason = models.TextField()
    tags = models.ManyToManyField("core.Person")
""",
    "billing/migrations/__init__.py": "",
    "billing/migrations/0001_initial.py": """
from django.db import migrations, models
class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Draft",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("number", models.CharField(max_length=20, unique=True)),
                ("old", models.TextField()),
                ("gone", models.TextField(null=True)),
            ],
        ),
        migrations.CreateModel(
            "Product", [("sku", models.CharField(max_length=9, primary_key=True))],
        ),
        migrations.CreateModel("Temporary", fields=[("id", models.AutoField(primary_key=True))]),
        migrations.RunSQL("CREATE TABLE IF NOT EXISTS raw_rows (id int)"),
    ]
""",
    "billing/migrations/0002_more.py": """
import django.db.models.deletion
from django.db import migrations, models
class Migration(migrations.Migration):
    dependencies = [("money", "0003_between")]
    operations = [
        migrations.RenameModel("Draft", "Invoice"),
        migrations.AlterModelTable(name="invoice", table="invoices"),
        migrations.RenameField("Invoice", "old", "text"),
        migrations.RemoveField(model_name="invoice", name="gone"),
        migrations.AlterField("invoice", "number", models.CharField(max_length=30, null=True)),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.AddField(
                "invoice", "product",
                models.ForeignKey("money.Product", django.db.models.deletion.SET_NULL, null=True),
            )],
            database_operations=[migrations.RunSQL("ALTER TABLE invoices ADD product_id text")],
        ),
        migrations.AddIndex("invoice", models.Index(fields=["-text"], name="by_text")),
        migrations.AddIndex("invoice", models.Index(fields=["number"], name="by_number")),
        migrations.RemoveIndex("invoice", "by_number"),
        migrations.AddConstraint(
            "invoice", models.UniqueConstraint(fields=["text", "product"], name="once"),
        ),
        migrations.DeleteModel("Temporary"),
    ]
""",
    "billing/migrations/0003_between.py": """
from django.db import migrations, models
class Migration(migrations.Migration):
    dependencies = [("money", "0001_initial")]
    operations = [
        migrations.AddField("draft", "parts", models.ManyToManyField("money.Product")),
        migrations.AlterUniqueTogether("draft", {("number", "old")}),
    ]
""",
}


def facts(files: Mapping[str, str]) -> list[FileFacts]:
    return [
        FileFacts(path, "python", tuple(locate_facts(read_code(text, "text/x-python").facts, text)))
        for path, text in files.items()
        if path.endswith(".py")
    ]


def is_suffixed(pattern: str) -> bool:
    """Return whether REST framework adds this pattern for paths such as `users.json`."""
    return r"\.(?P<format>" in pattern or "<drf_format_suffix" in pattern


def written(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
