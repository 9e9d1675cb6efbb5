using Microsoft.EntityFrameworkCore;

public class LegacyContext : DbContext
{
    public DbSet<Customer> Customers { get; set; }
    public DbSet<Parcel> Parcels { get; set; }

    protected override void OnModelCreating(ModelBuilder builder)
    {
        builder.Entity<Customer>().HasKey(c => c.Id).ToTable("legacy_customers");
        builder.Entity<Parcel>(parcel =>
        {
            parcel.ToTable("legacy_parcels");
            parcel.OwnsMany(p => p.Labels, label => label.ToTable("labels"));
        });
    }
}

public class Customer
{
    public int Id { get; set; }
}

public class Parcel
{
}
