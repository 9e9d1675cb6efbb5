"""Data that must go, must stay, or is gone: retention, erasures, holds, receipts, rescans."""
