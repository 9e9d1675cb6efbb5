package ragassets.guard;

import org.elasticsearch.cluster.metadata.ProjectMetadata;
import org.elasticsearch.common.compress.CompressedXContent;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.index.IndexMode;
import org.elasticsearch.index.IndexService;
import org.elasticsearch.index.IndexSettingProvider;
import org.elasticsearch.index.IndexVersion;

import java.time.Instant;
import java.util.List;

/**
 * Has new indexes find out every other second which of their deletions no copy needs any more.
 *
 * <p>Elasticsearch does so twice a minute, for copies on other nodes that come back. Until then no
 * merge drops a deleted entry, and whoever erases a document waits. Here is one node.
 */
final class ShortHistory implements IndexSettingProvider {

    private static final String INTERVAL = "2s";

    @Override
    public void provideAdditionalSettings(
        String index,
        String dataStream,
        IndexMode mode,
        ProjectMetadata project,
        Instant resolvedAt,
        Settings requested,
        List<CompressedXContent> mappings,
        IndexVersion version,
        Settings.Builder additional
    ) {
        additional.put(IndexService.RETENTION_LEASE_SYNC_INTERVAL_SETTING.getKey(), INTERVAL);
    }
}
