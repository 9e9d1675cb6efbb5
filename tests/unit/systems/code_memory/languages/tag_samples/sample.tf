variable "region" {
  default = "eu"
}

locals {
  name = "shop-${var.region}"
}

resource "aws_s3_bucket" "assets" {
  bucket = local.name
  region = var.region
}

module "network" {
  source = "./network"
  bucket = aws_s3_bucket.assets.id
}

output "bucket" {
  value = module.network.bucket
}
