<?php

// Runs migrations by Laravel's own schema builder on SQLite in memory and prints what results.
//
// Arguments: a JSON file {"dumps": [path], "migrations": [path], "strict": bool}; the paths are run in this order.
// Output: {"tables": {name: {columns, indexes, foreign}}, "statements": [...], "failed": {path: message}}.
//
// Laravel 8 leaves to doctrine/dbal, or leaves out on SQLite, what alters a table that exists (change, drop, rename,
// foreign keys). Those statements are made here by editing the table's own CREATE statement, one command at a time.

error_reporting(E_ALL & ~E_DEPRECATED);

require_once 'Illuminate/autoload.php';
require_once 'Illuminate/Database/autoload.php';

use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager as Capsule;
use Illuminate\Database\Connection;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Database\Schema\Grammars\SQLiteGrammar;
use Illuminate\Database\Schema\SQLiteBuilder;
use Illuminate\Database\SQLiteConnection;
use Illuminate\Support\Facades\Facade;

final class Log
{
    public static array $statements = [];
    public static array $foreign = [];
}

final class TruthGrammar extends SQLiteGrammar
{
    public function piece(Blueprint $blueprint, $column): string
    {
        return $this->addModifiers($this->wrap($column).' '.$this->getType($column), $blueprint, $column);
    }

    protected function typeSet($column)
    {
        return 'varchar';
    }
}

final class TruthBlueprint extends Blueprint
{
    public function build(Connection $connection, $grammar)
    {
        $this->addImpliedCommands($grammar);
        $made = $this->creating();
        Log::$statements[] = [
            'table' => $this->table,
            'columns' => array_map(fn ($column) => $column->getAttributes(), $this->columns),
            'commands' => array_map(fn ($command) => $command->getAttributes(), $this->commands),
        ];
        foreach ($this->commands as $command) {
            if ($command->name === 'foreign') {
                Log::$foreign[$this->table][$command->index] = (array) $command->columns;
            }
            $own = 'run'.ucfirst($command->name);
            if (! $made && method_exists($this, $own)) {
                $this->$own($command, $connection, $grammar);
                continue;
            }
            $method = 'compile'.ucfirst($command->name);
            if (method_exists($grammar, $method)) {
                foreach ((array) $grammar->$method($this, $command, $connection) as $sql) {
                    $connection->statement($sql);
                }
            }
            if ($command->name === 'rename') {
                Log::$foreign[$command->to] = Log::$foreign[$this->table] ?? [];
            }
        }
    }

    private function runAdd($command, $connection, $grammar): void
    {
        foreach ($this->getAddedColumns() as $column) {
            $this->edit($connection, fn ($pieces) => array_merge(
                array_filter($pieces, [$this, 'isColumn']),
                [$grammar->piece($this, $column)],
                array_filter($pieces, fn ($piece) => ! $this->isColumn($piece)),
            ));
        }
    }

    private function runChange($command, $connection, $grammar): void
    {
        foreach ($this->getChangedColumns() as $column) {
            $this->keep($connection, $column);
            $this->edit($connection, fn ($pieces) => array_map(
                fn ($piece) => $this->named($piece) === $column->name ? $grammar->piece($this, $column) : $piece,
                $pieces,
            ));
        }
    }

    /** What a change does not mention stays, as doctrine/dbal has it. */
    private function keep($connection, $column): void
    {
        $old = $connection->selectOne('select * from pragma_table_xinfo(?) where name = ?', [$this->table, $column->name]);
        if (! array_key_exists('nullable', $column->getAttributes())) {
            $column->nullable = ! $old->notnull;
        }
        if (! array_key_exists('default', $column->getAttributes()) && $old->dflt_value !== null) {
            $column->default = new Illuminate\Database\Query\Expression($old->dflt_value);
        }
    }

    private function runDropColumn($command, $connection, $grammar): void
    {
        foreach ($command->columns as $name) {
            foreach ($this->indexesOf($connection, $name) as $index) {
                $connection->statement('drop index '.$grammar->wrap($index));
            }
            $this->dropPieces($connection, [$name]);
            $this->edit($connection, fn ($pieces) => array_filter($pieces, fn ($p) => $this->named($p) !== $name));
        }
    }

    private function runRenameColumn($command, $connection, $grammar): void
    {
        $connection->statement(sprintf(
            'alter table %s rename column %s to %s',
            $grammar->wrapTable($this),
            $grammar->wrap($command->from),
            $grammar->wrap($command->to),
        ));
    }

    private function runForeign($command, $connection, $grammar): void
    {
        $piece = sprintf(
            'foreign key(%s) references %s(%s)',
            $grammar->columnize($command->columns),
            $grammar->wrapTable($command->on),
            $grammar->columnize((array) $command->references),
        );
        $piece .= $command->onDelete ? " on delete {$command->onDelete}" : '';
        $piece .= $command->onUpdate ? " on update {$command->onUpdate}" : '';
        $this->edit($connection, fn ($pieces) => array_merge($pieces, [$piece]));
    }

    private function runDropForeign($command, $connection, $grammar): void
    {
        $this->dropPieces($connection, $command->columns ?: Log::$foreign[$this->table][$command->index] ?? []);
    }

    private function runDropPrimary($command, $connection, $grammar): void
    {
        $this->edit($connection, fn ($pieces) => array_filter(
            $pieces,
            fn ($piece) => stripos(ltrim($piece), 'primary key') !== 0,
        ));
    }

    private function runPrimary($command, $connection, $grammar): void
    {
        $piece = 'primary key ('.$grammar->columnize($command->columns).')';
        $this->edit($connection, fn ($pieces) => array_merge($pieces, [$piece]));
    }

    private function runRenameIndex($command, $connection, $grammar): void
    {
        $old = $connection->selectOne("select sql from sqlite_master where type = 'index' and name = ?", [$command->from]);
        $connection->statement('drop index '.$grammar->wrap($command->from));
        $connection->statement(preg_replace(
            '/'.preg_quote($command->from, '/').'/',
            $command->to,
            $old->sql,
            1,
        ));
    }

    private function dropPieces($connection, array $columns): void
    {
        $wanted = implode(',', $columns);
        $this->edit($connection, fn ($pieces) => array_filter(
            $pieces,
            fn ($p) => ! (preg_match('/^\s*foreign key\s*\((.*?)\)/i', $p, $m)
                && str_replace(['"', ' '], '', $m[1]) === $wanted),
        ));
    }

    private function indexesOf($connection, string $column): array
    {
        $found = [];
        foreach ($connection->select("select name from pragma_index_list(?) where origin = 'c'", [$this->table]) as $index) {
            $columns = $connection->select('select name from pragma_index_info(?)', [$index->name]);
            if (in_array($column, array_column($columns, 'name'), true)) {
                $found[] = $index->name;
            }
        }

        return $found;
    }

    private function isColumn(string $piece): bool
    {
        return ! preg_match('/^\s*(foreign|primary|unique|constraint|check)\b/i', $piece);
    }

    private function named(string $piece): string
    {
        return preg_match('/^\s*(?:"([^"]+)"|`([^`]+)`|(\w+))/', $piece, $m) ? (end($m) ?: '') : '';
    }

    /** Replaces the comma-separated pieces between the outer brackets of the table's CREATE statement. */
    private function edit($connection, callable $change): void
    {
        $sql = $connection->selectOne("select sql from sqlite_master where type = 'table' and name = ?", [$this->table])->sql;
        $open = strpos($sql, '(');
        $close = strrpos($sql, ')');
        $pieces = array_values($change(self::split(substr($sql, $open + 1, $close - $open - 1))));
        $new = substr($sql, 0, $open + 1).implode(', ', array_map('trim', $pieces)).substr($sql, $close);
        $pdo = $connection->getPdo();
        $version = (int) $pdo->query('pragma schema_version')->fetchColumn();
        $pdo->exec('pragma writable_schema = on');
        $pdo->prepare("update sqlite_master set sql = ? where type = 'table' and name = ?")->execute([$new, $this->table]);
        $pdo->exec('pragma schema_version = '.($version + 1));
        $pdo->exec('pragma writable_schema = reset');
    }

    private static function split(string $text): array
    {
        $pieces = [''];
        $depth = 0;
        $quote = null;
        foreach (str_split($text) as $character) {
            if ($quote !== null) {
                $quote = $character === $quote ? null : $quote;
            } elseif (strpos('\'"`', $character) !== false) {
                $quote = $character;
            } elseif ($character === '(') {
                $depth++;
            } elseif ($character === ')') {
                $depth--;
            } elseif ($character === ',' && $depth === 0) {
                $pieces[] = '';
                continue;
            }
            $pieces[count($pieces) - 1] .= $character;
        }

        return $pieces;
    }
}

/** What later versions than Laravel 8 have, as they have it. */
final class TruthBuilder extends SQLiteBuilder
{
    public function withoutForeignKeyConstraints(Closure $callback)
    {
        return $callback();
    }
}

final class TruthConnection extends SQLiteConnection
{
    protected function getDefaultSchemaGrammar()
    {
        return new TruthGrammar;
    }

    public function getSchemaBuilder()
    {
        $this->useDefaultSchemaGrammar();
        $builder = new TruthBuilder($this);
        $builder->blueprintResolver(fn ($table, $callback, $prefix = '') => new TruthBlueprint($table, $callback, $prefix));

        return $builder;
    }
}

Connection::resolverFor('sqlite', fn (...$arguments) => new TruthConnection(...$arguments));
$capsule = new Capsule(new Container);
foreach (['default', ...($argv[2] ?? '' ? explode(',', $argv[2]) : [])] as $name) {
    $capsule->addConnection(['driver' => 'sqlite', 'database' => ':memory:'], $name);
}
$capsule->setAsGlobal();
$capsule->bootEloquent();
$container = $capsule->getContainer();
$container->instance('db', $capsule->getDatabaseManager());
$container->bind('db.schema', fn () => $capsule->getConnection()->getSchemaBuilder());
Container::setInstance($container);
Facade::setFacadeApplication($container);
foreach (['DB', 'Schema'] as $alias) {
    class_alias("Illuminate\\Support\\Facades\\$alias", $alias);
}

spl_autoload_register(function (string $class) {
    $at = strrpos($class, '\\');
    if (str_starts_with($class, 'Illuminate\\') || str_starts_with($class, 'Doctrine\\')) {
        return;
    }
    $space = $at === false ? '' : 'namespace '.substr($class, 0, $at).'; ';
    $short = $at === false ? $class : substr($class, $at + 1);
    eval("{$space}class {$short} extends \\Illuminate\\Database\\Eloquent\\Model {}");
});

$plan = json_decode(file_get_contents($argv[1]), true);
$connection = $capsule->getConnection();
foreach ($plan['dumps'] as $dump) {
    $connection->getPdo()->exec(file_get_contents($dump));
}
$failed = [];
foreach ($plan['migrations'] as $path) {
    $before = get_declared_classes();
    try {
        $migration = require $path;
        if (! is_object($migration)) {
            $new = array_filter(
                array_diff(get_declared_classes(), $before),
                fn ($class) => is_subclass_of($class, Illuminate\Database\Migrations\Migration::class),
            );
            $class = end($new);
            $migration = new $class;
        }
        $migration->up();
    } catch (Throwable $error) {
        $failed[$path] = get_class($error).': '.$error->getMessage();
    }
}

$tables = [];
foreach ($connection->select("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'") as $row) {
    $name = $row->name;
    $indexes = [];
    foreach ($connection->select('select * from pragma_index_list(?)', [$name]) as $index) {
        $columns = $connection->select('select name from pragma_index_info(?) order by seqno', [$index->name]);
        $indexes[] = [
            'name' => $index->name,
            'unique' => (bool) $index->unique,
            'origin' => $index->origin,
            'columns' => array_column($columns, 'name'),
        ];
    }
    $tables[$name] = [
        'columns' => $connection->select('select name, type, "notnull", dflt_value, pk, hidden from pragma_table_xinfo(?)', [$name]),
        'indexes' => $indexes,
        'foreign' => $connection->select('select * from pragma_foreign_key_list(?) order by id, seq', [$name]),
    ];
}
echo json_encode(
    ['tables' => $tables, 'statements' => Log::$statements, 'failed' => $failed],
    JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR,
);
