using Microsoft.EntityFrameworkCore;

public class ShopContext : DbContext
{
    public DbSet<Invoice> Invoices => Set<Invoice>();
    public DbSet<Shipment> Shipments { get; set; }
}

public class Invoice
{
}

public class Shipment
{
}

class ShipmentConfiguration : IEntityTypeConfiguration<Shipment>
{
    public void Configure(EntityTypeBuilder<Shipment> builder)
    {
        builder.ToTable("parcels");
    }
}
