package ragassets.guard;

import org.elasticsearch.index.query.BoolQueryBuilder;
import org.elasticsearch.index.query.ConstantScoreQueryBuilder;
import org.elasticsearch.index.query.DisMaxQueryBuilder;
import org.elasticsearch.index.query.ExistsQueryBuilder;
import org.elasticsearch.index.query.IdsQueryBuilder;
import org.elasticsearch.index.query.MatchAllQueryBuilder;
import org.elasticsearch.index.query.MatchBoolPrefixQueryBuilder;
import org.elasticsearch.index.query.MatchNoneQueryBuilder;
import org.elasticsearch.index.query.MatchPhrasePrefixQueryBuilder;
import org.elasticsearch.index.query.MatchPhraseQueryBuilder;
import org.elasticsearch.index.query.MatchQueryBuilder;
import org.elasticsearch.index.query.MultiMatchQueryBuilder;
import org.elasticsearch.index.query.PrefixQueryBuilder;
import org.elasticsearch.index.query.QueryBuilder;
import org.elasticsearch.index.query.RangeQueryBuilder;
import org.elasticsearch.index.query.TermQueryBuilder;
import org.elasticsearch.index.query.TermsQueryBuilder;
import org.elasticsearch.index.query.WildcardQueryBuilder;
import org.elasticsearch.search.builder.SearchSourceBuilder;
import org.elasticsearch.search.sort.FieldSortBuilder;
import org.elasticsearch.search.sort.ScoreSortBuilder;
import org.elasticsearch.search.sort.SortBuilder;
import org.elasticsearch.search.vectors.KnnSearchBuilder;
import org.elasticsearch.search.vectors.KnnVectorQueryBuilder;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Which searches look at nothing but the entries that an alias shows.
 *
 * <p>What is not known to be such is refused: a query that reads an entry of another index, for
 * example, or a suggestion, which takes its words from everybody's texts.
 */
final class PlainSearch {

    private static final Set<Class<? extends QueryBuilder>> LEAVES = Set.of(
        ExistsQueryBuilder.class,
        IdsQueryBuilder.class,
        MatchAllQueryBuilder.class,
        MatchBoolPrefixQueryBuilder.class,
        MatchNoneQueryBuilder.class,
        MatchPhrasePrefixQueryBuilder.class,
        MatchPhraseQueryBuilder.class,
        MatchQueryBuilder.class,
        MultiMatchQueryBuilder.class,
        PrefixQueryBuilder.class,
        RangeQueryBuilder.class,
        TermQueryBuilder.class,
        WildcardQueryBuilder.class
    );

    private PlainSearch() {}

    static boolean is(SearchSourceBuilder search) {
        return search == null
            || hasNoExtras(search)
                && all(search.sorts(), PlainSearch::isPlain)
                && all(search.knnSearch(), PlainSearch::isPlain)
                && isPlain(search.query())
                && isPlain(search.postFilter());
    }

    private static boolean hasNoExtras(SearchSourceBuilder search) {
        return search.retriever() == null
            && search.rankBuilder() == null
            && search.aggregations() == null
            && search.suggest() == null
            && search.highlighter() == null
            && search.collapse() == null
            && search.pointInTimeBuilder() == null
            && search.profile() == false
            && Boolean.TRUE.equals(search.explain()) == false
            && search.subSearches().size() <= 1
            && isEmpty(search.rescores())
            && isEmpty(search.scriptFields())
            && isEmpty(search.indexBoosts())
            && isEmpty(search.ext())
            && isEmpty(search.runtimeMappings());
    }

    private static boolean isPlain(SortBuilder<?> sort) {
        return sort instanceof ScoreSortBuilder
            || sort instanceof FieldSortBuilder field && field.getNestedSort() == null;
    }

    private static boolean isPlain(KnnSearchBuilder knn) {
        return knn.getQueryVectorBuilder() == null
            && knn.innerHit() == null
            && all(knn.getFilterQueries(), PlainSearch::isPlain);
    }

    private static boolean isPlain(QueryBuilder query) {
        if (query == null || LEAVES.contains(query.getClass())) {
            return true;
        }
        if (query instanceof BoolQueryBuilder bool) {
            return all(bool.must(), PlainSearch::isPlain)
                && all(bool.filter(), PlainSearch::isPlain)
                && all(bool.should(), PlainSearch::isPlain)
                && all(bool.mustNot(), PlainSearch::isPlain);
        }
        if (query instanceof KnnVectorQueryBuilder knn) {
            return knn.queryVectorBuilder() == null && all(knn.filterQueries(), PlainSearch::isPlain);
        }
        if (query instanceof ConstantScoreQueryBuilder constant) {
            return isPlain(constant.innerQuery());
        }
        if (query instanceof DisMaxQueryBuilder either) {
            return all(either.innerQueries(), PlainSearch::isPlain);
        }
        return query instanceof TermsQueryBuilder terms && terms.termsLookup() == null;
    }

    private static <T> boolean all(List<T> parts, Predicate<T> condition) {
        return parts == null || parts.stream().allMatch(condition);
    }

    private static boolean isEmpty(Collection<?> parts) {
        return parts == null || parts.isEmpty();
    }

    private static boolean isEmpty(Map<?, ?> parts) {
        return parts == null || parts.isEmpty();
    }
}
