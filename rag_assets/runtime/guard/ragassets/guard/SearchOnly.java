package ragassets.guard;

import org.elasticsearch.ElasticsearchStatusException;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.action.ActionRequest;
import org.elasticsearch.action.ActionResponse;
import org.elasticsearch.action.search.SearchRequest;
import org.elasticsearch.action.search.TransportSearchAction;
import org.elasticsearch.action.support.ActionFilter;
import org.elasticsearch.action.support.ActionFilterChain;
import org.elasticsearch.cluster.metadata.AliasMetadata;
import org.elasticsearch.cluster.metadata.IndexAbstraction;
import org.elasticsearch.cluster.metadata.ProjectId;
import org.elasticsearch.cluster.metadata.ProjectMetadata;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.common.util.concurrent.ThreadContext;
import org.elasticsearch.index.Index;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.tasks.Task;

/**
 * Keeps the searcher to searches of one filtered alias each.
 *
 * <p>An alias's filter holds for the hits of a search only. Term vectors, explanations,
 * suggestions and some aggregations count the words of the whole index, of other tenants too.
 */
final class SearchOnly implements ActionFilter {

    private static final String MARK = "rag_assets.search_only";

    // What a search does itself, fetching its hits for example; no request names such an action.
    private static final String PART = "internal:";

    private final ThreadContext context;
    private final ClusterService cluster;

    SearchOnly(ThreadContext context, ClusterService cluster) {
        this.context = context;
        this.cluster = cluster;
    }

    /** Marks what is done for a request as the searcher's. */
    static void mark(ThreadContext context) {
        context.putTransient(MARK, Boolean.TRUE);
    }

    @Override
    public int order() {
        return Integer.MIN_VALUE;
    }

    @Override
    public <Request extends ActionRequest, Response extends ActionResponse> void apply(
        Task task,
        String action,
        Request request,
        ActionListener<Response> listener,
        ActionFilterChain<Request, Response> chain
    ) {
        if (context.getTransient(MARK) == null || action.startsWith(PART) || isAllowed(action, request)) {
            chain.proceed(task, action, request, listener);
        } else {
            listener.onFailure(
                new ElasticsearchStatusException(
                    "this account may search a tenant's alias by vector, words and filters, and nothing else",
                    RestStatus.FORBIDDEN
                )
            );
        }
    }

    private boolean isAllowed(String action, ActionRequest request) {
        return TransportSearchAction.NAME.equals(action)
            && request instanceof SearchRequest search
            && search.scroll() == null
            && search.indices().length == 1
            && isFilteredAlias(search.indices()[0])
            && PlainSearch.is(search.source());
    }

    /** Whether a name is an alias that shows only what a filter lets through, of every index behind it. */
    private boolean isFilteredAlias(String name) {
        ProjectMetadata project = cluster.state().metadata().getProject(ProjectId.DEFAULT);
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
