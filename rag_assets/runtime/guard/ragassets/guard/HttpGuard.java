package ragassets.guard;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.channel.Channel;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpRequest;

import org.elasticsearch.ElasticsearchStatusException;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.http.netty4.internal.HttpValidator;
import org.elasticsearch.rest.RestStatus;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Decides from a request's headers whether it is answered; its body has not been read by then.
 *
 * <p>A request needs exactly one Authorization header, of the owner or of the searcher. Whoever
 * sends the right one is refused all the same when the Host is not this server's loopback address
 * or a browser says that another site's page is asking.
 */
final class HttpGuard implements HttpValidator {

    private static final String OWNER = "owner";
    private static final String SEARCHER = "searcher";
    private static final Pattern SEARCH = Pattern.compile("/[^/?]+/_search(\\?.*)?");
    private static final Set<String> OWN_FETCHES = Set.of("none", "same-origin");

    private final byte[] owner;
    private final byte[] searcher;
    private final Set<String> hosts;

    /**
     * @param accounts "owner" and "searcher": SHA-256, in hexadecimal, of the Authorization header
     *     of each. The server itself knows no password.
     * @param port where this server listens
     */
    HttpGuard(Properties accounts, int port) {
        this.owner = digestOf(accounts, OWNER);
        this.searcher = digestOf(accounts, SEARCHER);
        this.hosts = Set.of("127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port);
    }

    @Override
    public void validate(HttpRequest request, Channel channel, ActionListener<Void> listener) {
        ElasticsearchStatusException refusal = refusalOf(request);
        if (refusal == null) {
            listener.onResponse(null);
        } else {
            listener.onFailure(refusal);
        }
    }

    /** Whether a request that was let in is the searcher's. */
    boolean isSearcher(String authorization) {
        return authorization == null || MessageDigest.isEqual(sha256(authorization), owner) == false;
    }

    private ElasticsearchStatusException refusalOf(HttpRequest request) {
        HttpHeaders headers = request.headers();
        List<String> shown = headers.getAll(HttpHeaderNames.AUTHORIZATION);
        if (shown.size() != 1) {
            return unauthorized();
        }
        byte[] digest = sha256(shown.get(0));
        boolean searches = MessageDigest.isEqual(digest, searcher);
        if (searches == false && MessageDigest.isEqual(digest, owner) == false) {
            return unauthorized();
        }
        if (isFromHere(headers) == false) {
            return forbidden("this server answers at its loopback address, and to no site's pages");
        }
        if (searches && SEARCH.matcher(request.uri()).matches() == false) {
            return forbidden("this account may search a tenant's alias, and nothing else");
        }
        return null;
    }

    private boolean isFromHere(HttpHeaders headers) {
        List<String> named = headers.getAll(HttpHeaderNames.HOST);
        if (named.size() != 1 || hosts.contains(named.get(0)) == false) {
            return false;
        }
        for (String origin : headers.getAll(HttpHeaderNames.ORIGIN)) {
            if (origin.startsWith("http://") == false || hosts.contains(origin.substring(7)) == false) {
                return false;
            }
        }
        return OWN_FETCHES.containsAll(headers.getAll("sec-fetch-site"));
    }

    // Digests are compared, not passwords: how long that takes tells nothing of a password.
    private static byte[] sha256(String text) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static byte[] digestOf(Properties accounts, String name) {
        byte[] digest = HexFormat.of().parseHex(accounts.getProperty(name, ""));
        if (digest.length != 32) {
            throw new IllegalStateException("no SHA-256 of the account " + name);
        }
        return digest;
    }

    private static ElasticsearchStatusException unauthorized() {
        ElasticsearchStatusException refusal =
            new ElasticsearchStatusException("a password is needed", RestStatus.UNAUTHORIZED);
        // A scheme that no browser knows: none shall ask its user, or keep the password.
        refusal.addHttpHeader("WWW-Authenticate", "rag-assets");
        return refusal;
    }

    private static ElasticsearchStatusException forbidden(String reason) {
        return new ElasticsearchStatusException(reason, RestStatus.FORBIDDEN);
    }
}
