"""Tags that jobs put on their runs."""

NO_RUN_RETRIES = {"dagster/retry_on_asset_or_op_failure": "false"}
