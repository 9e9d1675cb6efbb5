package ragassets.guard;

import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;

import org.elasticsearch.cluster.ClusterState;
import org.elasticsearch.cluster.metadata.AliasMetadata;
import org.elasticsearch.cluster.metadata.IndexAbstraction;
import org.elasticsearch.cluster.metadata.ProjectId;
import org.elasticsearch.cluster.metadata.ProjectMetadata;
import org.elasticsearch.index.Index;

import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the searcher may ask for: <code>/NAME/_search</code>, where NAME is a filtered alias. */
final class SearchPath {

    // Elasticsearch decodes a path after this look at it, and a query's parameters add to the body:
    // neither is needed for a search, so neither is let through but for a few that narrow it.
    private static final Pattern SEARCH = Pattern.compile("/([a-z0-9][a-z0-9._-]*)/_search(?:\\?(.*))?");
    private static final Set<String> PARAMETERS =
        Set.of("typed_keys", "request_cache", "timeout", "pretty", "filter_path", "track_total_hits");

    private SearchPath() {}

    static boolean isAllowed(HttpRequest request, Predicate<String> mayBeSearched) {
        if (HttpMethod.GET.equals(request.method()) == false && HttpMethod.POST.equals(request.method()) == false) {
            return false;
        }
        Matcher asked = SEARCH.matcher(request.uri());
        return asked.matches() && isPlain(asked.group(2)) && mayBeSearched.test(asked.group(1));
    }

    private static boolean isPlain(String query) {
        if (query == null || query.isEmpty()) {
            return true;
        }
        for (String parameter : query.split("&", -1)) {
            if (PARAMETERS.contains(parameter.split("=", 2)[0]) == false) {
                return false;
            }
        }
        return true;
    }

    /** Whether a name is an alias that shows, of each index behind it, only what its filter lets through. */
    static boolean isFilteredAlias(ClusterState state, String name) {
        ProjectMetadata project = state.metadata().getProject(ProjectId.DEFAULT);
        IndexAbstraction found = project.getIndicesLookup().get(name);
        if (found == null || found.getType() != IndexAbstraction.Type.ALIAS) {
            return false;
        }
        for (Index index : found.getIndices()) {
            AliasMetadata alias = project.index(index).getAliases().get(name);
            if (alias == null || alias.filteringRequired() == false) {
                return false;
            }
        }
        return true;
    }
}
