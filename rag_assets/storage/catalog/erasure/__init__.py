"""Erasure of data, and its prevention: retention, erasures, holds, receipts, rescans."""
