using System.ComponentModel.DataAnnotations.Schema;

[Table("CatalogItems")]
public class Item { public int Id { get; set; } }
