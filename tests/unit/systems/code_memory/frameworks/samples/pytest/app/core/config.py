class Settings:
    API_V1_STR: str = "/api/v1"


settings = Settings()
