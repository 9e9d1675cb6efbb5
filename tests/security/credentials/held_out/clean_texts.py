"""Texts in which nothing must be masked; `{…}` is filled with random harmless values."""

from __future__ import annotations

PROSE = """\
Change your password every time it may have been seen by others.
The password is too short. The password is incorrect. The password is case-sensitive.
The new password is valid from tomorrow on.
The password was changed on Monday; the users were told on Tuesday.
Password reset: the link in the mail is valid for one hour.
Password policy: length over complexity.
Password – what is it good for?
Passwords: see the safe in room 217.
My password is not your password.
Login: Monday to Friday, 8 to 18 h.
User name and password: both are given out by the office.
Secret ingredient: a pinch of cinnamon.
Key: a small piece of metal. Lock: what it opens.
Key takeaway: measure before you optimise.
The secret service answered none of the questions.
Tokens are counted by the tokenizer, and 1,000 tokens are about 750 words.
Token limit: 4096
Max tokens: 1024
The bearer of this letter is entitled to enter.
An access token is a JSON web token with three parts, separated by dots.
API keys are created under Settings, API, New key. You will see the key only once.
The client secret must be kept confidential; public clients have none.
A private key never leaves the machine that made it; the public key may be given to anyone.
The passphrase protects the private key on disk.
Credentials are read from the environment, then from the file, then from the metadata server.
Das Kennwort wird verschlüsselt übertragen.
Ihr Passwort: mindestens zwölf Zeichen.
Die Zugangsdaten erhalten Sie per Post.
Das neue Passwort ist ab morgen gültig.
La contraseña es obligatoria.
Su contraseña ha caducado; cámbiela hoy mismo.
Le mot de passe est obligatoire.
Votre mot de passe a expiré.
La password è obbligatoria. La parola d'ordine è: pazienza e calma.
A senha é obrigatória e deve ter doze caracteres.
Het wachtwoord is verplicht.
Hasło jest wymagane.
Пароль должен содержать не менее двенадцати символов.
密码不能为空。
パスワードは必須です。
We met under the password-protected section of the site.
One-time passwords (TOTP, RFC 6238) change every thirty seconds.
The basic idea: send less, cache more. The basic plan costs 12 EUR.
Basic realm="Restricted area" is what the server answers.
Authorization is the question what somebody may do; authentication is who it is.
Phone: (030) 12 34 56 78, fax: (030) 12 34 56 79
Card ending in 4242, valid until 12/27
VAT ID DE123456789, court of Charlottenburg HRB 123456
Coordinates: 52.5200° N, 13.4050° E; height 34 m
ISSN 2049-3630, DOI 10.1000/182, arXiv:2310.06825v1
GPL-3.0-or-later, Apache-2.0 WITH LLVM-exception, BSD-3-Clause
Room A-3.17, building 12, parcel 2024-0815
Batch LOT20240312A, serial number SN-00012345
Temperature: 21.5 °C, pressure: 1013 hPa, humidity: 45 %
Windows 11 Pro 23H2 (build 22631.3447), KB5036893
CVE-2024-3094 in xz 5.6.0 and 5.6.1, CVSS 10.0
"""

DOCUMENTATION = """\
--set adminPassword=<custom-admin-password>
AWS_ACCESS_KEY_ID=<access key id>
AWS_SECRET_ACCESS_KEY=<secret access key>
ANTHROPIC_API_KEY=your_api_key_here
HF_TOKEN=hf_...
STRIPE_SECRET_KEY=sk_live_...
SLACK_BOT_TOKEN=xoxb-your-token
api_key: <insert your key here>
api-key: [your api key]
apikey: {{ .Values.apiKey | quote }}
password: {{ lookup('env', 'DB_PASSWORD') }}
password: !vault |
password: "{{ vault_db_password }}"
password: %DB_PASSWORD%
password = "<PASSWORD>"
password = "********"
"password": "string"
"password": "<redacted>"
"token": "REDACTED"
"api_key": null
"secret": ""
secret_key: ENC[redacted]
MYSQL_ROOT_PASSWORD: ${MYSQL_ROOT_PASSWORD}
MYSQL_ALLOW_EMPTY_PASSWORD: "yes"
spring.datasource.password=${DB_PASSWORD:}
DATABASE_URL=postgresql://USER:PASSWORD@HOST:PORT/DATABASE
redis://:${REDIS_PASSWORD}@redis:6379/0
https://<token>@github.com/acme/web.git
https://user:pass@example.org shows how not to do it.
git clone https://x-access-token:${GITHUB_TOKEN}@github.com/acme/web.git
psql "host=db user=app password=$PGPASSWORD"
echo "$TOKEN" | docker login -u ci --password-stdin
vault kv get -field=password secret/db
aws secretsmanager get-secret-value --secret-id prod/db/password
gcloud secrets versions access latest --secret=db-password
az login --service-principal -u "$APP_ID" -p "$CLIENT_SECRET" --tenant "$TENANT"
openssl rand -base64 32
ssh-keygen -t ed25519 -C jane@example.org
wg genkey | tee privatekey | wg pubkey > publickey
| Name | Type | Required | Description |
| api_key | string | yes | Key of the API |
| client_secret | `string` | no | Not needed for public clients |
| Password | Must have 12 characters |
| user | password |
| jane | (see the safe) |
| tom | n/a |
passwordFile: /run/secrets/db_password
password_file = "/etc/app/password"
existingSecret: web-credentials
secretKey: password
secretStore: {name: vault-backend, kind: ClusterSecretStore}
tokenSecretRef: {name: github-token, key: token}
gitlab-ctl reconfigure prints the path of the initial root password.
gitlab_rails['initial_root_password'] = "<strong password>"
gitlab_rails['db_password'] = 'YOUR_DB_PASSWORD_HERE'
smtp_password: "<smtp password>"
docker run -e POSTGRES_PASSWORD=$POSTGRES_PASSWORD -p 5432:5432 postgres
docker run -e POSTGRES_PASSWORD_FILE=/run/secrets/postgres -d postgres
ansible-vault encrypt_string --name db_password
ansible_become_password: "{{ lookup('community.hashi_vault.hashi_vault', 'secret=db') }}"
terraform apply -var="db_password=${TF_VAR_db_password}"
variable "db_password" { type = string, sensitive = true }
output "password" { value = random_password.db.result }
resource "random_password" "db" { length = 32 }
| Variable | Default | Meaning |
| `SESSION_TOKEN_TTL` | `3600` | Seconds until a session token expires |
| `PASSWORD_HASHER` | `argon2id` | How passwords are hashed |
| token_endpoint_auth_method | client_secret_basic | How the client authenticates |
token_endpoint: https://login.example.org/realms/main/protocol/openid-connect/token
ACCESS_TOKEN_EXPIRE_MINUTES=30
API_KEY_NAME=mailer
PASSWORD_FILE=/run/secrets/password
AUTH_TOKEN_HEADER: X-Auth-Token
SECRET_BACKEND=airflow.providers.hashicorp.secrets.vault.VaultBackend
passwordEncoder: bcrypt
max_tokens: 4096
stop_token_ids: [151643, 151645]
pad_token: "[PAD]"
eos_token: </s>
tokenizer_class: PreTrainedTokenizerFast
"""

CODE = """\
password = config.get("database", "password")
password = prompt("New password", hide_input=True)
password=password,
password = None
new_password = serializers.CharField(write_only=True, required=True)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.Common"}]
user.set_password(form.cleaned_data["password"])
token = Token.objects.create(user=user)
token = jwt.encode(payload, key, algorithm="HS256")
token = tokenizer.next_token()
next_page_token: str | None = None
page_token = response.next_page_token
csrf_token = get_token(request)
cancellation_token = CancellationToken.none
token = authorization.removeprefix("Bearer ")
secret = hmac.new(key, message, hashlib.sha256).hexdigest()
secret_name = f"projects/{project}/secrets/{name}/versions/latest"
api_key_header = APIKeyHeader(name="X-API-Key", auto_error=False)
API_KEY_ENV = "OPENAI_API_KEY"
TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{20,}")
raise ValueError("password must not be empty")
assert response.json() == {"detail": "Invalid password"}
const password = useRef<HTMLInputElement>(null);
const token = await getAccessToken({ scope: 'read:items' });
password: z.string().min(12).max(128),
password: process.env.DB_PASSWORD,
apiKey: import.meta.env.VITE_API_KEY ?? '',
<TextField label="Password" type="password" value={password} onChange={onPassword} />
t('auth.password.placeholder')
'auth.password' => 'The provided password is incorrect.',
'token_mismatch' => 'The token has expired, please reload the page.',
password:  "{{ password }}",
password := os.Getenv("DB_PASSWORD")
Password string `json:"password" validate:"required"`
var ErrInvalidToken = errors.New("invalid token")
let token = env::var("API_TOKEN").expect("API_TOKEN must be set");
pub password: SecretString,
public required string Password { get; init; }
[Required, DataType(DataType.Password)] public string Password { get; set; }
services.AddAuthentication(JwtBearerDefaults.AuthenticationScheme)
String password = System.getenv("DB_PASSWORD");
password = ENV.fetch("DB_PASSWORD")
has_secure_password
validates :password, length: { minimum: 12 }
ALTER TABLE users ADD COLUMN password_changed_at timestamptz;
CREATE INDEX users_token_idx ON users (token_hash);
a{color:#c0ffee}.b{background:url(/img/key-icon.svg)}#password-input{width:100%}
!function(e,t){"object"==typeof exports?module.exports=t():e.token=t()}(this,function(){return 42});
<svg viewBox="0 0 24 24"><path d="M12 2a5 5 0 0 1 5 5v3h1a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H6z"/></svg>
msgid "Password"
msgstr "Passwort"
"""

RANDOM = """\
Revert "{hex7}: tune the cache" ({hex40})
git checkout {hex40}
uses: actions/checkout@{hex40}
FROM alpine@sha256:{hex64}
sha256:{hex64}
SHA-1 {hex40}
checksum = "{hex64}"
resolved "https://registry.example.org/left-pad/-/left-pad-1.3.0.tgz#{hex40}"
github.com/acme/web v1.4.2 h1:{base64_32}
<script src="app.js" integrity="sha384-{base64_48}" crossorigin="anonymous"></script>
"id": "{uuid}",
correlation id {uuid}, node 7
x-request-id: {uuid}
urn:uuid:{uuid}
background: url(data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDov{base64_48});
https://docs.example.org/d/1{base36}{base36}/edit#gid=0
arn:aws:s3:::acme-logs/2024/03/12/{uuid}.gz
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{base64_32_plain} jane@laptop
Digest: SHA-256={base64_32}
color-token-{base36}: #a1b2c3;
The digest of "abc" is {hex64} as the standard's test vector says.
"""
