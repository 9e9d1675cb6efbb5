package ragassets.guard;

import org.elasticsearch.TransportVersion;
import org.elasticsearch.action.support.ActionFilter;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.network.NetworkService;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.Setting;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.util.BigArrays;
import org.elasticsearch.common.util.PageCacheRecycler;
import org.elasticsearch.common.util.concurrent.ThreadContext;
import org.elasticsearch.http.HttpPreRequest;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.http.HttpTransportSettings;
import org.elasticsearch.http.netty4.Netty4HttpServerTransport;
import org.elasticsearch.index.IndexService;
import org.elasticsearch.index.IndexSettingProvider;
import org.elasticsearch.indices.breaker.CircuitBreakerService;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.telemetry.TelemetryProvider;
import org.elasticsearch.threadpool.ThreadPool;
import org.elasticsearch.transport.Transport;
import org.elasticsearch.transport.netty4.Netty4Plugin;
import org.elasticsearch.transport.netty4.SharedGroupFactory;
import org.elasticsearch.transport.netty4.TLSConfig;
import org.elasticsearch.xcontent.NamedXContentRegistry;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/**
 * Elasticsearch's own network layer with a guard before HTTP, and with no port between nodes.
 *
 * <p>The guard's accounts are in <code>http-guard.properties</code> in the configuration folder;
 * without that file no node starts.
 */
public final class GuardedNetworkPlugin extends Netty4Plugin implements ActionPlugin {

    private static final String ACCOUNTS = "http-guard.properties";

    private final Properties accounts = new Properties();
    private final SharedGroupFactory threads;
    private SearchOnly searchOnly;

    public GuardedNetworkPlugin(Settings settings, Path configuration) throws IOException {
        try (Reader file = Files.newBufferedReader(configuration.resolve(ACCOUNTS))) {
            accounts.load(file);
        }
        threads = new SharedGroupFactory(settings);
    }

    @Override
    public Collection<?> createComponents(Plugin.PluginServices services) {
        searchOnly = new SearchOnly(services.threadPool().getThreadContext(), services.clusterService());
        return List.of();
    }

    @Override
    public List<ActionFilter> getActionFilters() {
        return List.of(searchOnly);
    }

    @Override
    public List<Setting<?>> getSettings() {
        List<Setting<?>> all = new ArrayList<>(super.getSettings());
        all.add(IndexService.RETENTION_LEASE_SYNC_INTERVAL_SETTING);
        return all;
    }

    @Override
    public Collection<IndexSettingProvider> getAdditionalIndexSettingProviders(IndexSettingProvider.Parameters parameters) {
        return List.of(new ShortHistory());
    }

    @Override
    public Map<String, Supplier<Transport>> getTransports(
        Settings settings,
        ThreadPool threadPool,
        PageCacheRecycler recycler,
        CircuitBreakerService breakers,
        NamedWriteableRegistry writeables,
        NetworkService network
    ) {
        return Map.of(
            NETTY_TRANSPORT_NAME,
            () -> new UnboundTransport(
                settings, TransportVersion.current(), threadPool, network, recycler, writeables, breakers, threads
            )
        );
    }

    @Override
    public Map<String, Supplier<HttpServerTransport>> getHttpTransports(
        Settings settings,
        ThreadPool threadPool,
        BigArrays arrays,
        PageCacheRecycler recycler,
        CircuitBreakerService breakers,
        NamedXContentRegistry contents,
        NetworkService network,
        HttpServerTransport.Dispatcher dispatcher,
        BiConsumer<HttpPreRequest, ThreadContext> perRequest,
        ClusterSettings clusterSettings,
        TelemetryProvider telemetry
    ) {
        HttpGuard guard = new HttpGuard(accounts, portOf(settings));
        return Map.of(
            NETTY_HTTP_TRANSPORT_NAME,
            () -> new Netty4HttpServerTransport(
                settings, network, threadPool, contents, dispatcher, clusterSettings, threads, telemetry,
                TLSConfig.noTLS(), null, guard
            ) {
                @Override
                protected void populatePerRequestThreadContext(RestRequest request, ThreadContext context) {
                    perRequest.accept(request.getHttpRequest(), context);
                    if (guard.isSearcher(request.header("Authorization"))) {
                        SearchOnly.mark(context);
                    }
                }
            }
        );
    }

    private static int portOf(Settings settings) {
        int[] ports = HttpTransportSettings.SETTING_HTTP_PORT.get(settings).ports();
        if (ports.length != 1) {
            throw new IllegalStateException("http.port has to be one port");
        }
        return ports[0];
    }
}
