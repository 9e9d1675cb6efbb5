from django.db import migrations, models


class Migration(migrations.Migration):
    operations = (
        migrations.CreateModel("Client", [("name", models.CharField(max_length=80))]),
        migrations.RenameModel("Client", "Customer"),
    )
