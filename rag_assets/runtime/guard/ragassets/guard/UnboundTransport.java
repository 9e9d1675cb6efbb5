package ragassets.guard;

import org.elasticsearch.TransportVersion;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.network.NetworkService;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.transport.BoundTransportAddress;
import org.elasticsearch.common.transport.TransportAddress;
import org.elasticsearch.common.util.PageCacheRecycler;
import org.elasticsearch.indices.breaker.CircuitBreakerService;
import org.elasticsearch.threadpool.ThreadPool;
import org.elasticsearch.transport.TcpTransport;
import org.elasticsearch.transport.netty4.Netty4Transport;
import org.elasticsearch.transport.netty4.SharedGroupFactory;

import java.net.InetAddress;
import java.net.InetSocketAddress;

/** The transport of a node that has no others: it listens nowhere, so nobody can connect to it. */
final class UnboundTransport extends Netty4Transport {

    // A node has to have an address. Nothing ever listens on port 0.
    private static final TransportAddress NOWHERE =
        new TransportAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));

    UnboundTransport(
        Settings settings,
        TransportVersion version,
        ThreadPool threadPool,
        NetworkService network,
        PageCacheRecycler recycler,
        NamedWriteableRegistry writeables,
        CircuitBreakerService breakers,
        SharedGroupFactory threads
    ) {
        super(settings, version, threadPool, network, recycler, writeables, breakers, threads);
    }

    @Override
    protected void bindServer(TcpTransport.ProfileSettings profile) {}

    @Override
    public BoundTransportAddress boundAddress() {
        return new BoundTransportAddress(new TransportAddress[] { NOWHERE }, NOWHERE);
    }
}
