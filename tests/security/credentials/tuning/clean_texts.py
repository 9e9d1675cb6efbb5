"""Texts in which nothing must be masked; `{…}` is filled with random harmless values."""

from __future__ import annotations

PROSE = """\
Passwords must have at least twelve characters and are never sent by mail.
The password is stored as a salted hash, so nobody can read it.
The password is wrong more often than you would think.
The password is required. The token is optional.
Your password: at least 12 characters, one digit, no names of pets.
Enter your password: it is not shown while you type.
Password: (leave empty to keep the present one)
Password: required
Token: none
An API key is a string that identifies a program; keep it secret and rotate it every 90 days.
The token expires after one hour; a refresh token lives for thirty days.
If the secret leaks, revoke it in the console and create another one.
Nobody from support will ever ask for your password.
Use a password manager. Secrets do not belong in tickets, chats or wikis.
We compared passwords, passkeys and one-time tokens in a study of 1,200 users.
Forgot your password? Choose "Reset password" and follow the link in the mail.
Das Passwort muss mindestens zwölf Zeichen lang sein und darf nicht weitergegeben werden.
Das Passwort ist falsch. Bitte versuchen Sie es noch einmal.
Passwort vergessen? Klicken Sie auf den Link.
La contraseña debe tener al menos doce caracteres.
¿Ha olvidado su contraseña? Escriba a soporte@example.org.
Le mot de passe doit comporter au moins douze caractères.
Mot de passe oublié ? Cliquez ici.
The secret to a good stew is patience. The key is to start early.
The key points are listed below: scope, budget, time.
Her key argument: nobody reads the manual.
Press any key to continue.
A token of appreciation was given to Mr. Miller on 12 May 2024.
The authorization header carries the bearer token; the basic scheme is not accepted.
Bearer tokens are checked before anything else is done.
Set the `Authorization` header to `Bearer <token>`.
Authorization: Bearer <your token>
Authorization: Bearer $TOKEN
Authorization: Basic <base64 of user:password>
Basic authentication is deprecated; Bearer authentication replaces it.
The `--password` flag reads the password from standard input when its value is `-`.
Use `--password-file` instead of `--password` wherever possible.
With `-p` the port is published; with `-P` all of them are.
See the chapter on passwords, page 217, and the appendix on tokens, page 345.
The primary key of the table is `id`, its foreign key `customer_id`.
Access tokens, refresh tokens and ID tokens are described in RFC 6749 and OpenID Connect Core 1.0.
The token bucket holds 100 tokens and is refilled at 10 tokens per second.
The model reads 8,192 tokens; the prompt has 512 tokens left.
Secret sharing after Shamir splits a secret into n parts of which k restore it.
The Secret Garden is a novel by Frances Hodgson Burnett.
The committee met in secret: nothing was published.
PIN: choose four to eight digits.
The PIN is printed on the letter that you received by post.
Contact: Jane Miller, +49 30 901820, jane.miller@example.org
IBAN DE89 3704 0044 0532 0130 00, BIC COBADEFFXXX
ISBN 978-3-16-148410-0, second edition, 1,024 pages
Order 4500123456 of 2024-03-12 was delivered to Hauptstraße 17, 10115 Berlin.
Invoice 2024-000317: 1,249.00 EUR, due on 30 April 2024, customer number 10045872.
Flight LH 1234 leaves at 06:45 from gate B17; booking code on your ticket.
The patch raised throughput from 1,270/s to 2,190/s (p50 6.2 ms, p99 18.4 ms).
Tracking number 1Z999AA10123456784 was shown at the counter.
"""

DOCUMENTATION = """\
admin_password: <custom-admin-password>
export API_KEY=<your-api-key>
export API_KEY=your-api-key-here
export OPENAI_API_KEY=...
OPENAI_API_KEY=sk-...
OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx
GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
token: ${{ secrets.GITHUB_TOKEN }}
password: ${{ secrets.DB_PASSWORD }}
password: ${DB_PASSWORD}
password: "${DB_PASSWORD:?must be set}"
password: changeme
POSTGRES_PASSWORD: changeme
DB_PASSWORD=
DB_PASSWORD=""
DB_PASSWORD=xxxxxxxx
DB_PASSWORD=********
api_key: "YOUR_API_KEY"
api_key = "REPLACE_ME"
secret: null
token: ~
curl -u 'admin:<password>' https://example.org/api
curl -u "$USER:$PASSWORD" https://example.org/api
curl -u user https://example.org/api
curl -H "Authorization: Bearer $TOKEN" https://api.example.org/v1/items
curl -H "X-Api-Key: ${API_KEY}" https://api.example.org/v1/items
postgresql://user:password@localhost/db is replaced by what the administrator set.
postgresql://<user>:<password>@<host>:5432/<database>
postgres://$DB_USER:$DB_PASSWORD@$DB_HOST/app
mysql -u root -p shop
mysql -u root -p"$MYSQL_ROOT_PASSWORD" shop
docker login -u ci --password-stdin registry.example.org
sshpass -f ~/.ssh/pass ssh jane@example.org
kubectl create secret generic db --from-literal=password=$PASSWORD
| Parameter | Description | Default |
| `auth.password` | Password of the user | `""` |
| `auth.existingSecret` | Name of a secret with the passwords | `nil` |
| `token` | The access token. Required. | |
| password | string | yes | The password of the account |
| API key | see the vault entry "mailer" | rotated monthly |
valueFrom: {secretKeyRef: {name: db-credentials, key: password}}
secretName: web-tls
imagePullSecrets: [{name: registry-credentials}]
passwordSecretRef: database-credentials
bin/kc.sh start --db postgres --db-username <user> --db-password <password>
bin/kc.sh start --https-key-store-password=<key-store-password>
bin/kcadm.sh config credentials --server http://localhost:8080 --realm master --user admin
KC_DB_PASSWORD={password of the database}
--spi-truststore-file-password=${TRUSTSTORE_PASSWORD}
The option `db-password` sets the password of the database user.
| db-password | The password of the database user. CLI: --db-password Env: KC_DB_PASSWORD | |
| accessTokenLifespan | 300 | Seconds that an access token lives |
| Passwords | Required actions | OTP policy | WebAuthn policy |
| client_secret_basic | client_secret_post | client_secret_jwt | private_key_jwt |
grant_type=password&username=<username>&password=<password>&client_id=<client>
grant_type=client_credentials
response_type=code&scope=openid&state=<state>&nonce=<nonce>
-Djavax.net.ssl.keyStorePassword=$KEYSTORE_PASSWORD
"accessToken": "<access-token>", "expiresIn": 300
password-policy: length(12) and notUsername and digits(1)
hashAlgorithm(pbkdf2-sha512) and hashIterations(210000)
auth_method: client_secret_basic
secretsProvider: awskms://alias/secrets?region=eu-central-1
kubectl get secret web -o jsonpath='{.data.password}' | base64 -d
Set PASSWORD_MIN_LENGTH=12 and TOKEN_LIFETIME_SECONDS=3600.
TOKEN_URL=https://login.example.org/oauth2/token
PASSWORD_RESET_URL=https://accounts.example.org/password/reset
API_KEY_HEADER=X-Api-Key
SECRET_NAME=prod/web/database
"""

CODE = """\
password = os.environ["DB_PASSWORD"]
password = getpass.getpass("Password: ")
password: str = Field(min_length=12, max_length=128)
password = request.form.get("password")
password = self._decrypt(row.password_encrypted)
self.password = password
if password != confirm_password:
def check_password(password: str, hashed: bytes) -> bool:
token = secrets.token_urlsafe(32)
token = next(tokens)
token_type = "bearer"
token_url = "/oauth2/token"
tokenUrl="https://login.example.org/oauth2/v2.0/token"
access_token = response.json()["access_token"]
return {"access_token": access_token, "token_type": "bearer"}
api_key = settings.api_key.get_secret_value()
api_key=os.getenv("OPENAI_API_KEY", "")
client = Client(api_key=api_key, timeout=30)
secret_key = config("SECRET_KEY")
SECRET_KEY = env.str("DJANGO_SECRET_KEY")
raise AuthenticationError("Invalid token: signature verification failed")
logger.info("token refreshed for user %s", user.id)
const token = localStorage.getItem('access_token');
const { password, ...rest } = user;
headers: { Authorization: `Bearer ${token}` },
headers["Authorization"] = "Bearer " + token
headers["Authorization"] = f"Bearer {self._token}"
<input type="password" name="password" placeholder="Password" autocomplete="current-password">
<label for="password">Password</label>
'password' => env('DB_PASSWORD', ''),
'password' => 'required|string|min:12|confirmed',
$password = $request->input('password');
'passwords.reset' => 'Your password has been reset.',
"password_too_short": "The password is too short.",
"forgotPassword": "Forgot your password?",
password_hash = bcrypt.hashpw(password, bcrypt.gensalt())
@Value("${spring.datasource.password}") private String password;
private final String passwordField = "password";
String token = request.getHeader("Authorization").substring(7);
token, err := jwt.Parse(tokenString, keyFunc)
if token == nil { return ErrNoToken }
func (c *Client) SetPassword(password string) *Client {
CREATE TABLE users (id serial PRIMARY KEY, name text, password_hash text NOT NULL);
SELECT password_hash FROM users WHERE name = $1;
GRANT SELECT ON users TO reader;
.password-field { color: #1a2b3c; background: #F0F8FF; }
.btn-secret-token:hover { border-color: #deadbe; }
for key, value in sorted(items.items()):
key = f"{tenant}:{document_id}:{version}"
PRIMARY_KEY = "document_id"
sort_key = lambda entry: entry.name
def keyPressed(key): return key == "ArrowDown"
"""

RANDOM = """\
commit {hex40}
Merge: {hex7} {hex7}
image: registry.example.org/web@sha256:{hex64}
{hex64}  dist/web-2.4.1.tar.gz
{hex32}  archive.zip
    --hash=sha256:{hex64} \\
"integrity": "sha512-{base64_64}",
integrity sha512-{base64_64}
request_id={uuid} status=200
ETag: "{hex32}"
document_id: {uuid}
trace_id={hex32} span_id={hex16}
<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{base64_64}" alt="logo">
https://example.org/files/{uuid}/report-2024-final.pdf
https://cdn.example.org/assets/app.{hex20}.js
.css-{base36} {{ margin: 0; }}
MD5 of the empty string followed by a blank is {hex32}.
"""
